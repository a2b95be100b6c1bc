import hashlib
import hmac
import time


def verify_webhook(body: bytes, headers: dict, secret: str) -> bool:
    """Whether a webhook came from your server and is not older than five minutes.

    `headers` has names in lower case; `secret` is `whsec_…`.
    """
    identity = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    # The key is the text after "whsec_" itself: it is not base64-decoded.
    key = secret.removeprefix("whsec_").encode()
    message = f"{identity}.{timestamp}.".encode() + body
    expected = "v3," + hmac.new(key, message, hashlib.sha256).hexdigest()
    return hmac.compare_digest(headers.get("webhook-signature", ""), expected)
