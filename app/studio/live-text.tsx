import { useEffect, useRef, useState } from 'react';

/** Shortest time between two announcements of one topic, in milliseconds. */
const quietMs = 15_000;

/** Tells a screen reader what is going on: each new topic, and within one every now and then. */
export function LiveText({ topic, text }: { topic: string; text: string }) {
  const [said, setSaid] = useState('');
  const last = useRef({ topic: '', at: 0 });
  useEffect(() => {
    const now = Date.now();
    if (topic === last.current.topic && now - last.current.at < quietMs) return;
    last.current = { topic, at: now };
    setSaid(text);
  }, [topic, text]);
  return (
    <p className="visually-hidden" aria-live="polite">
      {said}
    </p>
  );
}
