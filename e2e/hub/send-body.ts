import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** Sends a file, or the part that was asked for, with one thing going wrong where told. */
export async function sendBody(
  file: HubFile,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
  sent: SentBody,
): Promise<void> {
  if (fault?.kind === 'reset') {
    request.socket.destroy();
    return;
  }
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
  await write(response, body, fault, sent);
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
): Promise<void> {
  const stopsAt =
    fault?.kind === 'cut' || fault?.kind === 'stall'
      ? Math.min(fault.afterBytes, body.length)
      : body.length;
  const step = fault?.kind === 'slow' ? fault.pieceBytes : pieceBytes;
  while (sent.bytesSent < stopsAt && !response.destroyed) {
    if (fault?.kind === 'slow') await pause(fault.pauseMs);
    const end = Math.min(stopsAt, sent.bytesSent + step);
    const written = await writePiece(response, body.subarray(sent.bytesSent, end));
    if (!written) break;
    sent.bytesSent = end;
  }
  if (fault?.kind === 'stall') {
    await new Promise((resolve) => response.once('close', resolve));
  } else if (sent.bytesSent < body.length) {
    // What was written has arrived, as on a network; a browser drops what it has not read by then.
    await pause(50);
    response.socket?.end();
  } else {
    response.end();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
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
