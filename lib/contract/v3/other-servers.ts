import { noises } from '../lora-files';
import { sizes } from '../request';
import { ApiError } from './errors';
import refusedFields from './refused-fields.json' with { type: 'json' };

/** Families whose hosted models have no `size`: the image decides. */
const sizedByImage: readonly string[] = ['wavespeed-ai/wan-2.2'];

const sizeOfAspect = new Map<unknown, string>([
  ['16:9', '1280*720'],
  ['9:16', '720*1280'],
  ['auto', 'auto'],
  ['adaptive', 'auto'],
]);

/** A submission as clients of other servers of this API family send it, in the fields of `submitSchema`. */
type Body = Record<string, unknown>;

/**
 * Reads the fields that other servers have: `webhook_url` is `webhook`, `aspect_ratio` and `resolution` are `size`,
 * `high_noise_loras` and `low_noise_loras` are `loras` with their `noise`, an empty `last_image` is none.
 *
 * @param sent the body, unchecked
 * @param path the parameters of the submission's path
 * @throws ApiError `INVALID_PARAMETER` for a field of `refused-fields.json`, unless it asks for nothing, and for fields
 *   that contradict each other
 */
export function fromOtherServers(sent: unknown, path: Readonly<Record<string, string>>): unknown {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return sent;
  const body: Body = { ...sent };
  for (const { names, remedy, neutral } of refusedFields) {
    const name = names.find((one) => asks(body[one]) && body[one] !== neutral);
    if (name !== undefined) throw refusal(name, `${name} is not a field of this server.`, remedy);
  }
  if (body.last_image === '') delete body.last_image;
  const webhooks = [body.webhook, body.webhook_url].filter(asks);
  if (new Set(webhooks).size > 1) throw refusal('webhook_url', 'The body names two webhooks.');
  if (webhooks.length > 0) [body.webhook] = webhooks;
  for (const noise of noises) {
    const own = body[`${noise}_noise_loras`];
    if (!asks(own)) continue;
    const added = [own].flat().map((lora) => ({ ...Object(lora), noise }));
    body.loras = [...(asks(body.loras) ? [body.loras].flat() : []), ...added];
  }
  const isSizedByImage = sizedByImage.includes(`${path.provider}/${path.family}`);
  return { ...body, ...(isSizedByImage && { size: 'auto' }), ...sizeOf(body) };
}

/** The `size` that a body names by other fields. */
function sizeOf({ size, aspect_ratio: aspect, resolution }: Body): { size?: unknown } {
  const named = new Set([size].filter(asks));
  if (asks(aspect)) {
    const ofAspect = sizeOfAspect.get(aspect);
    if (!ofAspect) throw refusal('aspect_ratio', 'aspect_ratio must be 16:9, 9:16 or auto.');
    named.add(ofAspect);
  }
  const text =
    typeof resolution === 'string' ? resolution.toLowerCase().replace(/[x×]/, '*') : resolution;
  if (asks(resolution) && text !== '720p') {
    const sentence = 'resolution must be 720p, 1280x720 or 720x1280.';
    if (!sizes.some((one) => one === text)) throw refusal('resolution', sentence);
    named.add(text);
  }
  const [first] = named;
  if (named.size < 2) return first === undefined ? {} : { size: first };
  const sentence = 'size, aspect_ratio and resolution contradict each other.';
  throw refusal(asks(aspect) ? 'aspect_ratio' : 'resolution', sentence, 'Send `size`.');
}

/** Whether a value asks for anything. */
function asks(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== '' && value !== false;
}

function refusal(field: string, message: string, remedy = ''): ApiError {
  return new ApiError('INVALID_PARAMETER', message, { details: [{ field, message }], remedy });
}
