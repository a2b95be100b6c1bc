import { z } from 'zod';
import { sha256 } from './sha256';
import { terms, termsVersion } from './terms-text';

export * from './terms-text';

/** The terms as lines of text, for terminals and for {@link termsSha256}. */
export function termsText(): string {
  const sections = terms.map(({ title, text, points, source }) =>
    [
      title,
      text,
      ...points.map((point) => `- ${point}`),
      ...(source ? [`(${source.name}, ${source.url})`] : []),
    ].join('\n'),
  );
  return [`Terms of use, version ${termsVersion}`, ...sections].join('\n\n');
}

/** SHA-256 of the text of the terms, in hex. */
export async function termsSha256(): Promise<string> {
  return sha256(new TextEncoder().encode(termsText()));
}

/** Which terms were accepted, and when. */
export const termsAcceptanceSchema = z.object({
  version: z.string(),
  /** SHA-256 of the accepted text, in hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** ISO 8601. */
  at: z.string(),
});
export type TermsAcceptance = z.output<typeof termsAcceptanceSchema>;
