package lock_test

// Helpers whose files others port. The lead removes what is there twice.
