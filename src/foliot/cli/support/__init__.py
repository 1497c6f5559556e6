"""What several commands share: the REST client, options, output and files."""
