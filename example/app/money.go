package main

import (
	"errors"
	"fmt"
)

// amountPlaces is how many digits after the point an amount may have: a price
// in cents times a discount in percent needs four.
const amountPlaces = 4

// ErrAmountPlaces says that an amount cannot be written with four decimals.
// Rounding it would make the ledger differ from what the customer agreed to.
var ErrAmountPlaces = errors.New("the amount has more than 4 decimals")

// lineAmount returns price × quantity × (1 − discount), exactly.
func lineAmount(price Decimal, quantity int64, discount Decimal) (Decimal, error) {
	rest, err := decimalInt(1).Sub(discount)
	if err != nil {
		return Decimal{}, fmt.Errorf("amount: %w", err)
	}
	amount, err := price.Mul(decimalInt(quantity))
	if err != nil {
		return Decimal{}, fmt.Errorf("amount: %w", err)
	}
	if amount, err = amount.Mul(rest); err != nil {
		return Decimal{}, fmt.Errorf("amount: %w", err)
	}
	if amount.Places() > amountPlaces {
		return Decimal{}, ErrAmountPlaces
	}
	return amount, nil
}
