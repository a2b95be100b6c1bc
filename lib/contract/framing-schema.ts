import { z } from 'zod';
import { type Framing, maxZoom } from './framing';

/** Checks a {@link Framing} from a command line or a file. */
export const framingSchema = z.object({
  zoom: z.number().min(0).max(maxZoom),
  x: z.number().min(0).max(1),
  y: z.number().min(0).max(1),
  background: z.union([z.literal('blur'), z.string().regex(/^#[0-9a-f]{6}$/i)]),
}) satisfies z.ZodType<Framing>;
