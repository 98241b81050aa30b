package tabletest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Error codes of the engine's answers.
const (
	codeValidation     = "ValidationException"
	codeSerialization  = "SerializationException"
	codeUnknown        = "UnknownOperationException"
	codeNotFound       = "ResourceNotFoundException"
	codeNoTable        = "TableNotFoundException"
	codeInUse          = "ResourceInUseException"
	codeLimit          = "LimitExceededException"
	codeCondition      = "ConditionalCheckFailedException"
	codeCanceled       = "TransactionCanceledException"
	codeConflict       = "TransactionConflictException"
	codeMismatch       = "IdempotentParameterMismatchException"
	codeThrottled      = "ProvisionedThroughputExceededException"
	codeInternal       = "InternalServerError"
	codeFailure        = "InternalFailure"
	codeExpired        = "ExpiredTokenException"
	codeDenied         = "AccessDeniedException"
	codeInProgress     = "TransactionInProgressException"
	serviceNamespace   = "com.amazonaws.dynamodb.v20120810#"
	validateNamespace  = "com.amazon.coral.validate#"
	transportNamespace = "com.amazon.coral.service#"
)

// apiError is an error answer.
type apiError struct {
	status  int
	code    string
	message string
	item    attr.Item // existing item, in a ConditionalCheckFailedException, if the request asked for it
	reasons []reason  // in a TransactionCanceledException
	// mismatch reports that a request does not fit a table's schema. In a transaction such an error is the reason for a cancellation,
	// and not an error of the whole request.
	mismatch bool
	// whole is the opposite: in a transaction it refuses the request, although only the evaluation of an action shows it.
	whole bool
}

// reason is the result of one action of a cancelled transaction.
type reason struct {
	code    string
	message string
	item    attr.Item
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func fail(code, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *apiError { return fail(codeValidation, format, args...) }

func mismatch(message string) *apiError {
	e := invalid("%s", message)
	e.mismatch = true
	return e
}

// parameter returns a validation error with a beginning that many of the service's texts share.
func parameter(format string, args ...any) *apiError {
	return invalid("One or more parameter values were invalid: "+format, args...)
}

func errMissingTable() *apiError { return fail(codeNotFound, "Requested resource not found") }

// errNoSuchTable returns the error of operations on tables for a missing table.
func errNoSuchTable(name string) *apiError {
	return fail(codeNotFound, "Requested resource not found: Table: %s not found", name)
}

func errInternal() *apiError {
	e := fail(codeInternal, "The request processing has failed because of an unknown error, exception or failure.")
	e.status = http.StatusInternalServerError
	return e
}

// errFailure returns the error, without a message, with which the service always answers some invalid requests.
func errFailure() *apiError {
	e := fail(codeFailure, "")
	e.status = http.StatusInternalServerError
	return e
}

// asAPI turns errors of internal packages into answers.
func asAPI(err error) *apiError {
	var api *apiError
	if errors.As(err, &api) {
		return api
	}
	var bad attr.InvalidError
	if errors.As(err, &bad) {
		return fail(codeValidation, "%s", string(bad))
	}
	var shape attr.MalformedError
	if errors.As(err, &shape) {
		return fail(codeSerialization, "%s", string(shape))
	}
	return errInternal()
}

// within prefixes an expression's error with the name of its parameter.
func within(name string, err error) error {
	var bad attr.InvalidError
	if errors.As(err, &bad) {
		return attr.InvalidError("Invalid " + name + ": " + string(bad))
	}
	return err
}

func (e *apiError) namespace() string {
	switch e.code {
	case codeValidation:
		return validateNamespace
	case codeSerialization, codeUnknown, codeExpired, codeFailure, codeDenied:
		return transportNamespace
	}
	return serviceNamespace
}

// body returns the JSON form of the error.
func (e *apiError) body() []byte {
	o := newObject()
	o.text("__type", e.namespace()+e.code)
	switch {
	case e.message == "":
	case e.code == codeCanceled, e.code == codeSerialization:
		o.text("Message", e.message)
	default:
		o.text("message", e.message)
	}
	if e.item != nil {
		o.item("Item", e.item)
	}
	if e.reasons != nil {
		o.list("CancellationReasons", len(e.reasons), func(b []byte, i int) []byte {
			r := e.reasons[i]
			inner := object{b: append(b, '{')}
			inner.text("Code", r.code)
			if r.message != "" {
				inner.text("Message", r.message)
			}
			if r.item != nil {
				inner.item("Item", r.item)
			}
			return inner.end()
		})
	}
	return o.end()
}

// object builds one JSON object.
type object struct {
	b []byte
	n int
}

func newObject() *object { return &object{b: append(make([]byte, 0, 512), '{')} }

func (o *object) name(name string) {
	if o.n > 0 {
		o.b = append(o.b, ',')
	}
	o.n++
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, value string) {
	o.name(name)
	o.b = jsontree.AppendString(o.b, value)
}

func (o *object) item(name string, it attr.Item) {
	o.name(name)
	o.b = it.Append(o.b)
}

func (o *object) list(name string, n int, f func(b []byte, i int) []byte) {
	o.name(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = f(o.b, i)
	}
	o.b = append(o.b, ']')
}

func (o *object) object(name string, f func(*object)) {
	o.name(name)
	inner := object{b: append(o.b, '{')}
	f(&inner)
	o.b = inner.end()
}

func (o *object) end() []byte { return append(o.b, '}') }
