-- Begins a transaction that reads one state.
BEGIN;
