#!/bin/sh
# Needs curl and jq. KINORA_URL is your server, KINORA_KEY an API key.
set -eu
auth="Authorization: Bearer $KINORA_KEY"
api="$KINORA_URL/api/v3"
call() { # leaves the body in $answer; says why it was refused
  answer=$(curl -sS --fail-with-body -H "$auth" "$@") || {
    look '.message, .details[]?.message' >&2
    exit 1
  }
}
look() { printf %s "$answer" | jq -r "$1"; }

# 1. The still: upload it and get its address.
call "$api/media/upload/binary" -F "file=@still.png"
image=$(look .data.download_url)

# 2. The submission. Steps and guidance are for the demonstration model; leave them out for the defaults, 30 and 5.
body=$(jq -n --arg image "$image" '{
    image: $image,
    prompt: "A lighthouse in evening light. The camera pans slowly to the left.",
    num_inference_steps: 8,
    guidance_scale: 2
  }')
call "$api/kinora/wan-2.2/i2v-720p-lora" -H "Content-Type: application/json" -d "$body"
id=$(look .data.id)

# 3. Until it has ended. Each request waits up to eight seconds for that.
status=created
while [ "$status" = created ] || [ "$status" = processing ]; do
  call "$api/predictions/$id/result?wait=8"
  status=$(look .data.status)
done
[ "$status" = completed ] || { look .data.error >&2; exit 1; }

# 4. The video needs no key.
curl -sSf -o video.mp4 "$(look '.data.outputs[0]')"
echo "video.mp4 is there."
