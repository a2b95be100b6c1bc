import { ApiError, endpoints, variants } from '../../lib/contract/v3';
import { shortened } from './input';

/**
 * The refusal of a path that leads nowhere: which part of it is wrong, and what there is.
 *
 * @param path percent-encoded
 * @param families `{provider}/{family}` of the models that this server offers
 */
export function notFound(path: string, families: readonly string[]): ApiError {
  const [, api, version, ...rest] = path.split('/').map(readable);
  if (api !== 'api' || version === undefined || !/^v[23]$/.test(version)) return nothingAt(path);
  const [first = '', second = '', third = ''] = rest;
  if (first === 'predictions' && rest.length >= 2) {
    if (second === '') return refusal('The id of the prediction is missing in the path.', idForm);
    return refusal(`"${second}" is not the id of a prediction.`, idForm);
  }
  if (version !== 'v3' || rest.length !== 3 || ownNames.has(first)) return nothingAt(path);
  const family = `${first}/${second}`;
  if (!families.includes(family)) {
    const others = `This server has ${listed(families)}.`;
    return refusal(`There is no model family "${family}".`, others);
  }
  const others = `Its variants are ${listed(variants)}.`;
  return refusal(`The model family ${family} has no variant "${third}".`, others);
}

/** First parts of our own paths, such as `predictions`: whatever else stands there is a provider of models. */
const ownNames = new Set<string>(
  Object.values(endpoints).map(({ path }) => path.split('/')[3] ?? ''),
);

const idForm = 'An id has 32 lower-case hex characters, as `data.id` of a submission.';

const refusal = (sentence: string, remedy: string) =>
  new ApiError('NOT_FOUND', sentence, { remedy });
const nothingAt = (path: string) =>
  refusal(`There is nothing at ${readable(path)}.`, 'Compare the path with /docs/api.');

function listed(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? 'none';
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** A part of a path as a message repeats it: decoded, short, on one line. */
function readable(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // As it came.
  }
  return shortened(text.replace(/[\p{Cc}\p{Surrogate}]/gu, '?'));
}
