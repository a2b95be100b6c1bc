// Node 20 or newer, nothing to install. KINORA_URL is your server, KINORA_KEY an API key.
import { readFile, writeFile } from 'node:fs/promises';

async function call(path, body) {
  const response = await fetch(`${process.env.KINORA_URL}/api/v3/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      Authorization: `Bearer ${process.env.KINORA_KEY}`,
      ...(body && { 'Content-Type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) {
    const details = (answer.details ?? []).map((detail) => detail.message);
    throw new Error([`${answer.error_code}: ${answer.message}`, ...details].join('\n'));
  }
  return answer.data;
}

const still = await readFile('still.png', 'base64');
let prediction = await call('kinora/wan-2.2/i2v-720p-lora', {
  image: `data:image/png;base64,${still}`,
  prompt: 'A lighthouse in evening light. The camera pans slowly to the left.',
  num_inference_steps: 8, // for the demonstration model; 30 without this line
  guidance_scale: 2, // for the demonstration model; 5 without this line
});

// Each request waits up to eight seconds for the end.
while (prediction.status === 'created' || prediction.status === 'processing') {
  prediction = await call(`predictions/${prediction.id}/result?wait=8`);
}
if (prediction.status === 'failed') throw new Error(prediction.error);

const video = await fetch(prediction.outputs[0]);
await writeFile('video.mp4', Buffer.from(await video.arrayBuffer()));
console.log('video.mp4 is there.');
