import type { HandlerOf } from './handler';

/** `POST /api/v3/media/uploads`: where to put the bytes, and where they will be had. */
export const uploadTicket: HandlerOf<'uploadTicket'> = async ({ files }, { body, caller }) => {
  const { upload, headers } = await files.ticket(caller, body);
  return {
    download_url: files.links.uploadDownload(upload),
    upload: { method: 'PUT', url: files.links.uploadTarget(upload), headers },
  };
};
