/**
 * Import this first in a test's engine: its videos of the model of tests have a third of their frames, as
 * encoding them takes most of the time of a test.
 */

/** Frames per second: a worker's name may be another number. */
const framesPerSecond = Number(self.name) || 8;

const { fetch } = globalThis;
globalThis.fetch = async (...asked) => {
  const answer = await fetch(...asked);
  if (!answer.url.endsWith('/models/tiny.json')) return answer;
  const manifest = { ...(await answer.json()), framesPerSecond, maxClipFrames: 41 };
  return Response.json(manifest);
};
