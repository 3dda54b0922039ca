"""The ways in which an address has a secret; each comes to every place that writes an address."""

SECRET = "5ecret0f7heUser"
WAYS = (
    f"?key={SECRET}",
    f"?id=7&private_token={SECRET}",
    f"?code={SECRET}&state={SECRET}",
    f"?sessionid={SECRET}",
    f"?{SECRET}",
    f"?access_token={SECRET}",
    f"?X-Amz-Signature={SECRET}&X-Amz-Expires=60",
    f"?pin={SECRET}",
    f";jsessionid={SECRET}",
    f"?next=https%3A%2F%2Fuser%3A{SECRET}%40x.org%2F",
)
"""What follows the path of an address."""
