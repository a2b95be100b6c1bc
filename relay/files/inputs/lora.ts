import { Readable } from 'node:stream';
import { KinoraError } from '../../../lib/contract';
import { ApiError } from '../../../lib/contract/v3';
import { GuardError, statusError } from '../../guard/errors';
import type { NodeHandler } from '../../http/router';
import type { FilesContext } from '../context';
import { invalidField, queryOf } from '../requests';
import { headersOf, sendBody, serveBlob } from '../serving';
import { loraType } from '../uploads/kinds';
import { runningJob } from './image';
import { checkedSafetensors } from './safetensors-stream';

/** Longest fetch of one adapter, in milliseconds. */
const totalMs = 15 * 60_000;

/**
 * `GET /files/jobs/{id}/lora/{index}`: an adapter of a job, for the worker that has its lease. An upload
 * comes from the blob store; a link is fetched through the guard and streamed to the worker.
 *
 * A refusal's `details` holds one sentence that names the adapter: the worker fails the job with it.
 */
export function getJobLora(context: FilesContext): NodeHandler {
  return async (request, response, { id = '', index = '' }) => {
    const at = /^[0-9]$/.test(index) ? Number(index) : -1;
    const job = await runningJob(context, `lora/${at}`, id, queryOf(request));
    const lora = job.loras[at];
    if (!lora || lora.from === 'hub') throw new ApiError('NOT_FOUND');
    const field = `loras.${at}.path`;
    const presentation = {
      type: loraType,
      filename: `${at}.safetensors`,
      tag: `${id}-${at}`,
      readers: 'same-origin',
      maxAge: 0,
    } as const;
    if (lora.from === 'upload') {
      const upload = await context.rows.get(lora.uploadId);
      if (!upload?.blobKey || upload.owner !== job.owner) {
        const sentence = `The LoRA ${lora.path} is no longer among the uploads.`;
        throw invalidField(field, sentence, { code: 'NOT_FOUND' });
      }
      await serveBlob(request, response, context.blobs, upload.blobKey, {
        ...presentation,
        tag: upload.sha256 ?? upload.id,
      });
      return;
    }
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    const found = await openLink(context, lora.url, closed.signal).catch((thrown: unknown) => {
      throw toRefusal(thrown, field, lora.path);
    });
    for (const [name, value] of Object.entries(headersOf(presentation))) {
      if (name !== 'ETag') response.setHeader(name, value);
    }
    response.setHeader('Content-Length', found.bytes);
    if (request.method === 'HEAD') {
      closed.abort();
      response.end();
      return;
    }
    await sendBody(Readable.from(found.body, { objectMode: false }), response);
  };
}

async function openLink(
  { guard, config }: FilesContext,
  url: string,
  signal: AbortSignal,
): Promise<{ bytes: number; body: AsyncGenerator<Uint8Array> }> {
  const maxBytes = config.KINORA_MAX_LORA_BYTES;
  const answer = await guard.fetch(url, { redirects: 5, maxBytes, totalMs, signal });
  if (answer.status !== 200) {
    answer.body.destroy();
    throw statusError(url, answer.status);
  }
  const checked = await checkedSafetensors('The file', answer.body, answer.bytes);
  if (checked.bytes > maxBytes) {
    answer.body.destroy();
    throw new GuardError('too-large', `The file is larger than ${maxBytes} bytes.`);
  }
  return checked;
}

/** The refusal as one sentence that names the adapter, for the worker to report. */
function toRefusal(thrown: unknown, field: string, path: string): unknown {
  if (thrown instanceof GuardError) {
    const sentence = `The LoRA ${path} could not be loaded: ${thrown.message}`;
    // The worker asks again after a 503, and then leaves the job for another attempt.
    if (thrown.isPassing) {
      const remedy = 'Try again in a few seconds.';
      const details = [{ field, message: sentence }];
      return new ApiError('STORAGE_DOWN', sentence, { cause: thrown, remedy, details });
    }
    const code = thrown.reason === 'status' ? 'NOT_FOUND' : 'INVALID_PARAMETER';
    return invalidField(field, sentence, { code, cause: thrown });
  }
  if (thrown instanceof KinoraError) {
    const sentence = `The LoRA ${path} cannot be used: ${thrown.message}`;
    return invalidField(field, sentence, { cause: thrown });
  }
  return thrown;
}
