# Python 3, nothing to install. KINORA_URL is your server, KINORA_KEY an API key.
import base64
import json
import os
import urllib.error
import urllib.request


def call(path, body=None):
    request = urllib.request.Request(
        os.environ["KINORA_URL"] + "/api/v3/" + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["KINORA_KEY"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        refusal = json.load(error)
        details = [detail["message"] for detail in refusal.get("details", [])]
        raise SystemExit("\n".join([refusal["message"], *details]))


with open("still.png", "rb") as still:
    image = "data:image/png;base64," + base64.b64encode(still.read()).decode()

prediction = call(
    "kinora/wan-2.2/i2v-720p-lora",
    {
        "image": image,
        "prompt": "A lighthouse in evening light. The camera pans slowly to the left.",
        "num_inference_steps": 8,  # for the demonstration model; 30 without this line
        "guidance_scale": 2,  # for the demonstration model; 5 without this line
    },
)

# Each request waits up to eight seconds for the end.
while prediction["status"] in ("created", "processing"):
    prediction = call(f"predictions/{prediction['id']}/result?wait=8")
if prediction["status"] == "failed":
    raise SystemExit(prediction["error"])

urllib.request.urlretrieve(prediction["outputs"][0], "video.mp4")
print("video.mp4 is there.")
