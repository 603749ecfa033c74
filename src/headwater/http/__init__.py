"""What the API and the pages share: who asks, what a request may be, and how errors are answered."""
