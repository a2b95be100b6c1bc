#!/bin/sh
# Needs curl and jq. KINORA_URL is your server, KINORA_KEY an API key.
set -eu
auth="Authorization: Bearer $KINORA_KEY"
api="$KINORA_URL/api/v3"

# 1. The still: upload it and get its address.
image=$(curl -sf "$api/media/upload/binary" -H "$auth" -F "file=@still.png" |
  jq -r .data.download_url)

# 2. The submission. Few steps, for a first try; leave the line out for the default of 30.
id=$(jq -n --arg image "$image" '{
    image: $image,
    prompt: "Waves roll towards the lighthouse, evening light",
    num_inference_steps: 10
  }' |
  curl -sf "$api/kinora/wan-2.2/i2v-720p-lora" -H "$auth" -H "Content-Type: application/json" -d @- |
  jq -r .data.id)

# 3. Until it has ended. Each request waits up to eight seconds for that.
status=created
while [ "$status" = created ] || [ "$status" = processing ]; do
  result=$(curl -sf "$api/predictions/$id/result?wait=8" -H "$auth")
  status=$(echo "$result" | jq -r .data.status)
done
[ "$status" = completed ] || { echo "$result" | jq -r .data.error >&2; exit 1; }

# 4. The video needs no key.
curl -sf -o video.mp4 "$(echo "$result" | jq -r '.data.outputs[0]')"
echo "video.mp4 is there."
