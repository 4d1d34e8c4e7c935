"""What people look at: tables, charts, simulations."""
