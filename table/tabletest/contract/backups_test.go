package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestRecovery_RefusesWrongPeriods(t *testing.T) {
	const period = " at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint: Member must have value "
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.InProcess, "DynamoDB Local has no operations on backups")
		tb := newTable(t, e)
		tb.createAs(func(*dynamodb.CreateTableInput) {})
		for specification, text := range map[string]string{
			`{"PointInTimeRecoveryEnabled":true,"RecoveryPeriodInDays":36}`: "1 validation error detected: Value '36'" + period + "less than or equal to 35",
			`{"PointInTimeRecoveryEnabled":true,"RecoveryPeriodInDays":0}`:  "1 validation error detected: Value '0'" + period + "greater than or equal to 1",
			`{"PointInTimeRecoveryEnabled":false,"RecoveryPeriodInDays":7}`: "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.",
		} {
			err := tb.raw("UpdateContinuousBackups", `{"TableName":"TABLE","PointInTimeRecoverySpecification":`+specification+`}`)
			tb.exactly(err, "ValidationException", text, "")
		}
	})
}
