import { base64, isFlagged, type Prediction, sha256, uncheckedSafety } from '../../../lib/contract';
import { endpoints, type OwnVideo, type Share } from '../../../lib/contract/v3';
import { savePoster } from '../../../lib/predictions/poster';
import { systemClock } from '../../../lib/weights/hub/retry';
import {
  checkResponse,
  TransportError,
  toTransportError,
} from '../../../lib/worker/transport-error';
import { type UploadClient, type UploadTarget, uploadVideo } from '../../../lib/worker/upload';
import { getRunner } from '../../runner';

type Completed = Extract<Prediction, { status: 'completed' }>;

/**
 * Makes the link of a video on the server of this page, with the session's cookie, and uploads the video where the
 * server has not got it.
 *
 * @param onProgress gets what is sent, from 0 to 1
 * @throws ApiError `UNAUTHORIZED` and other refusals; TransportError; the signal's reason
 */
export async function shareVideo(options: {
  prediction: Completed;
  file: Blob;
  share: OwnVideo['share'];
  onProgress: (fraction: number) => void;
  signal: AbortSignal;
}): Promise<Share> {
  const { prediction, file, share, onProgress, signal } = options;
  const safety = prediction.result.safety ?? uncheckedSafety('off');
  const poster = isFlagged(safety) ? undefined : await posterOf(prediction);
  const { id, parameters, profile, result } = prediction;
  const target = { id, leaseToken: '', sha256: await sha256(await file.arrayBuffer()) };
  const stored = await send(addressOf(target), { method: 'HEAD', signal });
  if (stored.headers.get('Upload-Complete') !== '?1') {
    await uploadVideo(uploadClient(onProgress), target, file, signal);
  }
  onProgress(1);
  const video: OwnVideo = {
    sha256: target.sha256,
    parameters: { ...parameters, seed: result.seed },
    profile: result.profile ?? profile,
    model: result.model,
    inference_ms: Math.round(result.timings.total * 1000),
    ...(result.applied && { applied: result.applied }),
    safety,
    ...(poster && { poster: base64(new Uint8Array(await poster.arrayBuffer())) }),
    share,
  };
  const { method, path, answer } = endpoints.shareOwnVideo;
  const response = await send(path.replace('{id}', id), {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(video),
    signal,
  });
  return answer.parse(await response.json()).data;
}

/** The gallery's picture of a video, made now where there is none yet; undefined where it cannot be made. */
async function posterOf(prediction: Completed): Promise<Blob | undefined> {
  const { store } = getRunner();
  const known = await store.poster(prediction.id);
  if (known) return known;
  await savePoster(store, prediction);
  return await store.poster(prediction.id);
}

/** Deletes a shared video from the server, and its link with it. @throws as {@link shareVideo} */
export async function unshareVideo(id: string): Promise<void> {
  const { method, path } = endpoints.unshareOwnVideo;
  await send(path.replace('{id}', id), { method });
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, init).catch((thrown: unknown) => {
    throw toTransportError(thrown);
  });
  await checkResponse(response);
  return response;
}

function addressOf({ id, sha256: hash }: Pick<UploadTarget, 'id' | 'sha256'>): string {
  return `/api/admin/videos/${id}?sha256=${hash}`;
}

/** Requests of an upload that tell how much is sent, which `fetch` does not. */
function uploadClient(onProgress: (fraction: number) => void): UploadClient {
  return {
    clock: systemClock,
    async output(target, file, signal, timeoutMs = 0) {
      const response = await new Promise<Response>((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open('PUT', addressOf(target));
        request.setRequestHeader('Content-Type', 'video/mp4');
        request.timeout = timeoutMs;
        request.upload.onprogress = ({ loaded }) => onProgress(loaded / file.size);
        const fail = () => reject(new TransportError('the server cannot be reached'));
        request.onerror = fail;
        request.ontimeout = fail;
        request.onabort = () => reject(signal.reason);
        request.onload = () => {
          const wait = request.getResponseHeader('Retry-After');
          const headers: Record<string, string> = wait === null ? {} : { 'Retry-After': wait };
          resolve(new Response(request.responseText, { status: request.status, headers }));
        };
        signal.addEventListener('abort', () => request.abort(), { once: true });
        if (signal.aborted) reject(signal.reason);
        else request.send(file);
      });
      await checkResponse(response);
    },
  };
}
