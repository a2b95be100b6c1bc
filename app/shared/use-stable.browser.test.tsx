import { createContext, memo, use, useState } from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { expect, test } from 'vitest';
import { useStable, useSteady } from './use-stable';

interface Content {
  readonly text: string;
  readonly press: () => void;
}
const Context = createContext<Content>({ text: '', press: () => {} });

test('readers of a steady context render for its values, not for new functions or the rest of the page', () => {
  let renders = 0;
  const pressed: number[] = [];
  let pressNow = () => {};
  let setText = (_: string) => {};
  let setProgress = (_: number) => {};
  const Reader = memo(function Reader() {
    const { text, press } = use(Context);
    renders++;
    pressNow = press;
    return text;
  });
  function Page() {
    const [text, changeText] = useState('first');
    const [progress, changeProgress] = useState(0);
    [setText, setProgress] = [changeText, changeProgress];
    const { press } = useStable({ press: () => pressed.push(progress) });
    return (
      <Context value={useSteady({ text, press })}>
        <Reader />
      </Context>
    );
  }
  const box = document.body.appendChild(document.createElement('div'));
  const root = createRoot(box);
  flushSync(() => root.render(<Page />));
  const before = renders;
  for (const progress of [1, 2, 3]) flushSync(() => setProgress(progress));
  expect(renders).toBe(before);
  pressNow();
  expect(pressed).toEqual([3]);
  flushSync(() => setText('second'));
  expect(renders).toBe(before + 1);
  expect(box.textContent).toBe('second');
  root.unmount();
});
