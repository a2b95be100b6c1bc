/**
 * Path of the folder below which this copy of the app is served: empty, or such as `/kinora`. The build sets it
 * (`npm run export -- --base-path`).
 */
const basePath = process.env.KINORA_BASE_PATH ?? '';

/** The path of a file of the app as its host serves it. Next does the same for links between pages. */
export function appPath(path: `/${string}`): string {
  return basePath + path;
}

/** The address of a file of the app, for pages and their workers. */
export function appUrl(path: `/${string}`): URL {
  return new URL(appPath(path), globalThis.location.origin);
}
