import { noises } from '../lora-files';
import { sizes } from '../request';
import { ApiError } from './errors';

/** Families whose hosted models have no `size`: the image decides. */
const sizedByImage: readonly string[] = ['wavespeed-ai/wan-2.2'];

const sizeOfAspect = new Map<unknown, string>([
  ['16:9', '1280*720'],
  ['9:16', '720*1280'],
  ['auto', 'auto'],
  ['adaptive', 'auto'],
]);

/** Fields that other servers have and this one has not, and what to do instead. */
export const refusedFields: Readonly<Record<string, string>> = {
  'image_url input_image start_image first_frame first_frame_image':
    'Send the start image as `image`.',
  'end_image end_image_url last_image_url last_frame tail_image':
    'Send the end image as `last_image`.',
  'lora lora_url lora_path lora_weights lora_scale':
    'Send `loras`, a list of objects with `path` and `scale`.',
  'steps num_steps sample_steps inference_steps': 'Send `num_inference_steps`.',
  'cfg cfg_scale guidance sample_guide_scale': 'Send `guidance_scale`.',
  'shift sample_shift': 'Send `flow_shift`.',
  'num_frames frames video_length seconds': 'Send `duration` in seconds.',
  'fps frames_per_second frame_rate': 'The model decides it; `smooth` doubles it.',
  'width height max_area': 'Send `size`.',
  'audio audio_url generate_audio enable_audio sound': 'Videos have no sound.',
  'enable_prompt_expansion prompt_expansion expand_prompt prompt_extend':
    'Send `enable_prompt_optimizer`.',
  disable_safety_checker: 'Send `enable_safety_checker`.',
  'n num_videos num_outputs': 'A submission makes one video: send several.',
  output_format: 'Videos are MP4.',
  'fast_mode go_fast turbo acceleration': 'Submit to the variant that ends in `-ultra-fast`.',
  'scheduler sampler sampler_name': 'The variant of the model decides it.',
  'camera_control camera_motion camera_fixed shot_type': 'Describe motion and camera in `prompt`.',
  'video video_url': 'This model makes a video of an image: send `image`.',
};
/** Their values for “nothing”. */
const neutral: Readonly<Record<string, unknown>> = {
  n: 1,
  num_videos: 1,
  num_outputs: 1,
  output_format: 'mp4',
  acceleration: 'none',
};

/** A submission as clients of other servers of this API family send it, in the fields of `submitSchema`. */
type Body = Record<string, unknown>;

/**
 * Reads the fields that other servers have: `webhook_url` is `webhook`, `aspect_ratio` and `resolution` are `size`,
 * `high_noise_loras` and `low_noise_loras` are `loras` with their `noise`, an empty `last_image` is none.
 *
 * @param sent the body, unchecked
 * @param path the parameters of the submission's path
 * @throws ApiError `INVALID_PARAMETER` for one of {@link refusedFields}, unless it asks for nothing, and for fields that
 *   contradict each other
 */
export function fromOtherServers(sent: unknown, path: Readonly<Record<string, string>>): unknown {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return sent;
  const body: Body = { ...sent };
  for (const [names, remedy] of Object.entries(refusedFields)) {
    const name = names.split(' ').find((one) => asks(body[one]) && body[one] !== neutral[one]);
    if (name !== undefined) throw refusal(name, `${name} is not a field of this server.`, remedy);
  }
  if (body.last_image === '') delete body.last_image;
  const webhooks = [body.webhook, body.webhook_url].filter(asks);
  if (new Set(webhooks).size > 1) throw refusal('webhook_url', 'The body names two webhooks.');
  if (webhooks.length > 0) [body.webhook] = webhooks;
  const added = noises.flatMap((noise) =>
    listed(body[`${noise}_noise_loras`]).map((lora) => ({ ...Object(lora), noise })),
  );
  if (added.length > 0) body.loras = [...listed(body.loras), ...added];
  const isSizedByImage = sizedByImage.includes(`${path.provider}/${path.family}`);
  return { ...body, ...(isSizedByImage && { size: 'auto' }), ...sizeOf(body) };
}

/** An error of a submission, which names LoRAs as its sender has them: here all are `loras`. */
export function inFieldsOfSender(error: unknown, sent: unknown): unknown {
  if (!(error instanceof ApiError) || error.details.length === 0) return error;
  const fields = ['loras', ...noises.map((noise) => `${noise}_noise_loras`)].flatMap((field) =>
    listed(Object(sent)[field]).map((_, index) => `${field}.${index}`),
  );
  const named = (text: string) =>
    text.replace(/^loras\.(\d+)/, (field, index) => fields[Number(index)] ?? field);
  const { code, message, remedy, headers, cause } = error;
  const details = error.details.map((detail) => ({
    field: named(detail.field),
    message: named(detail.message),
  }));
  return new ApiError(code, named(message), { details, remedy, headers, cause });
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

function listed(value: unknown): unknown[] {
  return asks(value) ? [value].flat() : [];
}

function refusal(field: string, message: string, remedy = ''): ApiError {
  return new ApiError('INVALID_PARAMETER', message, { details: [{ field, message }], remedy });
}
