/** Whether this copy of the app has a server with the API; a static export has none (`npm run export`). */
export const hasServer = process.env.KINORA_EXPORT !== '1';
