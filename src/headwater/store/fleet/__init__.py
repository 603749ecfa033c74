"""What a mining operator needs: machines and their readings, trades, portfolios, the market and forecasts."""
