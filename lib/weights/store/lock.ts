/**
 * Name of a model's Web Lock. Who downloads, converts, checks or deletes the model holds it alone; who
 * makes a video with it shares it.
 */
export function modelLock(id: string): string {
  return `kinora:model:${id}`;
}
