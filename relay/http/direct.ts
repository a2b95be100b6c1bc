import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Relay } from '../open';
import { answer } from './answer';
import { sendAnswer } from './reply';
import { toRequest } from './request';

/** Answers one request without Next, through the function that Next's route handlers call. */
export async function answerDirectly(
  relay: Relay,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const closed = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) closed.abort();
  });
  await sendAnswer(request, response, await answer(relay, toRequest(request, closed.signal)));
}
