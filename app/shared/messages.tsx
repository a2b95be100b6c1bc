import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { ErrorCode, ErrorRecord } from '../../lib/contract';
import type { HelpPlace } from '../help/error-places';
import { errorTexts, t } from '../texts';
import { Link } from './link';

/** Leads to what the help says of an error or a subject: each has an anchor (`app/help/error-places.ts`). */
export function HelpLink({ to }: { to: ErrorCode | HelpPlace }) {
  return <Link href={`/help#${to}`}>{t('shared.moreAbout')}</Link>;
}

/** An error with its remedy. */
export function Problem({ error, children }: { error: ErrorRecord; children?: ReactNode }) {
  const { message, remedy, detail } = errorTexts(error);
  return (
    <div className="problem" data-code={error.code}>
      <p>
        <strong>{message}</strong> {remedy} <HelpLink to={error.code} />
      </p>
      {detail && (
        <p className="field-hint" lang="en">
          {detail}
        </p>
      )}
      {children && <div className="actions">{children}</div>}
    </div>
  );
}

/** The same, announced where it appears; nothing where there is no error. */
export function ProblemAlert({ error }: { error: ErrorRecord | null }) {
  return (
    error && (
      <div role="alert">
        <Problem error={error} />
      </div>
    )
  );
}

/** Shortest time between two announcements of one topic, in milliseconds. */
const announcementIntervalMs = 15_000;

/** Announces `text` to screen readers: at once for a new topic, else at most every 15 seconds. */
export function LiveText({ topic, text }: { topic: string; text: string }) {
  const [announced, setAnnounced] = useState('');
  const last = useRef({ topic: '', at: 0 });
  useEffect(() => {
    const now = Date.now();
    if (topic === last.current.topic && now - last.current.at < announcementIntervalMs) return;
    last.current = { topic, at: now };
    setAnnounced(text);
  }, [topic, text]);
  return (
    <p className="visually-hidden" aria-live="polite">
      {announced}
    </p>
  );
}
