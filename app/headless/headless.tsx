'use client';

import { useEffect, useState } from 'react';
import { installHeadlessApi } from './api';

/**
 * The bare page that `npm run generate` drives: file inputs and `window.kinora`. The same runner,
 * engine and library as in the studio, without anything to look at.
 */
export function HeadlessPage() {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    window.kinora = installHeadlessApi();
    setReady(true);
  }, []);
  return (
    <main data-ready={ready}>
      <h1>Kinora, headless</h1>
      <label>
        Image <input id="image" type="file" />
      </label>
      <label>
        LoRAs <input id="loras" type="file" multiple />
      </label>
      <label>
        Files of a model <input id="files" type="file" multiple />
      </label>
      <label>
        Folder of a model <input id="folder" type="file" multiple {...{ webkitdirectory: '' }} />
      </label>
    </main>
  );
}
