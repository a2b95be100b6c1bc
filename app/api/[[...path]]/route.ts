import { handle } from '../../../relay/http/route-handler';

/** Every operation of `lib/contract/v3/endpoints.ts` that goes through Next; `relay/http` answers. */
export const dynamic = 'force-dynamic';
export const runtime = 'nodejs';

export {
  handle as DELETE,
  handle as GET,
  handle as HEAD,
  handle as OPTIONS,
  handle as PATCH,
  handle as POST,
  handle as PUT,
};
