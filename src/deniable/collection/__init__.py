"""What is asked, of whom and at what price: the manifest, the wire format, and the client."""
