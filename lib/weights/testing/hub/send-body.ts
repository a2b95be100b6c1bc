import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from './faults';
import type { HubFile } from './repositories';

/** What went out of a file; kept up to date while it goes out. */
export interface SentBody {
  status: number;
  start: number;
  bytesSent: number;
}

/** Bytes written at a time: small, so that what a client has is what was counted. */
const pieceBytes = 65_536;
/** Between two drops of a body that is held: far less than what a client takes for the end. */
const dropMs = 1000;

/**
 * Sends a file, or the part that was asked for, with the given fault.
 *
 * @param healed ends a hold
 */
export async function sendBody(
  file: HubFile,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
  sent: SentBody,
  healed: AbortSignal,
): Promise<void> {
  if (fault?.kind === 'reset') return reset(request, fault);
  if (fault?.kind === 'status') {
    sent.status = fault.status;
    response.writeHead(fault.status, fault.headers).end();
    return;
  }
  const total = file.bytes.length;
  const asked = fault?.kind === 'whole' ? null : rangeOf(request, total);
  if (asked === 'unsatisfiable') {
    sent.status = 416;
    response.writeHead(416, { 'Content-Range': `bytes */${total}` }).end();
    return;
  }
  const shift = fault?.kind === 'shifted' ? fault.by : 0;
  const start = Math.min(total, (asked?.start ?? 0) + shift);
  const end = Math.min(total, (asked?.end ?? total) + shift);
  const body = file.bytes.subarray(start, fault?.kind === 'short' ? start + fault.bytes : end);
  response.setHeader('ETag', `"${file.large ? file.sha256 : file.oid}"`);
  response.setHeader('Accept-Ranges', 'bytes');
  response.setHeader('Content-Length', body.length);
  if (asked) response.setHeader('Content-Range', `bytes ${start}-${end - 1}/${total}`);
  sent.status = asked ? 206 : 200;
  response.writeHead(sent.status);
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  sent.start = start;
  await write(response, body, fault, sent, healed);
}

/** Ends the connection without an answer, when the fault says so. */
export async function reset(
  request: IncomingMessage,
  { when }: Extract<Fault, { kind: 'reset' }>,
): Promise<void> {
  await when;
  request.socket.destroy();
}

function rangeOf(request: IncomingMessage, total: number) {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  if (first === undefined) return null;
  const start = Number(first);
  if (start >= total) return 'unsatisfiable';
  return { start, end: Math.min(total, last ? Number(last) + 1 : total) };
}

/** Writes the body, as far as it is to go. */
async function write(
  response: ServerResponse,
  body: Uint8Array,
  fault: Fault | undefined,
  sent: SentBody,
  healed: AbortSignal,
): Promise<void> {
  const { afterBytes = body.length } = fault && 'afterBytes' in fault ? fault : {};
  const { pieceBytes: step, pauseMs } = fault?.kind === 'slow' ? fault : { pieceBytes, pauseMs: 0 };
  const writeTo = async (stopsAt: number) => {
    while (sent.bytesSent < stopsAt && !response.destroyed) {
      if (pauseMs > 0) await delay(pauseMs);
      const end = Math.min(stopsAt, sent.bytesSent + step);
      const written = await writePiece(response, body.subarray(sent.bytesSent, end));
      if (!written) break;
      sent.bytesSent = end;
    }
  };
  await writeTo(Math.min(afterBytes, body.length));
  if (fault?.kind === 'held') {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const over = AbortSignal.any([healed, gone.signal]);
    while (!over.aborted && !response.destroyed && sent.bytesSent < body.length) {
      await delay(dropMs, undefined, { signal: over }).catch(() => undefined);
      if (!over.aborted) await writeTo(sent.bytesSent + 1);
    }
    await writeTo(body.length);
  }
  if (fault?.kind === 'stall') {
    await new Promise((resolve) => response.once('close', resolve));
  } else if (sent.bytesSent < body.length) {
    // What was written has arrived, as on a network; a browser drops what it has not read by then.
    await delay(50);
    // Where this process stood still, its own clients have not read yet: timers come first.
    for (let turns = 0; turns < 3; turns += 1) await new Promise(setImmediate);
    response.socket?.end();
  } else {
    response.end();
  }
}

/** Whether a piece was taken by the connection. */
function writePiece(response: ServerResponse, piece: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    const gone = () => resolve(false);
    response.once('close', gone);
    response.write(piece, (error) => {
      response.off('close', gone);
      resolve(!error);
    });
  });
}
