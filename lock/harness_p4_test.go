package lock_test
