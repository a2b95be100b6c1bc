// npm install wavespeed. KINORA_URL is your server, KINORA_KEY an API key.
import { writeFile } from 'node:fs/promises';
import { Client } from 'wavespeed';

const client = new Client(process.env.KINORA_KEY, { baseUrl: process.env.KINORA_URL });

const image = await client.upload('still.png');
const { outputs } = await client.run('kinora/wan-2.2/i2v-720p-lora', {
  image,
  prompt: 'A lighthouse in evening light. The camera pans slowly to the left.',
  num_inference_steps: 8, // for the demonstration model; 30 without this line
  guidance_scale: 2, // for the demonstration model; 5 without this line
});

const video = await fetch(outputs[0]);
await writeFile('video.mp4', Buffer.from(await video.arrayBuffer()));
console.log('video.mp4 is there.');
