'use client';

import { useState } from 'react';
import { switchVersion, useAppOffers } from './installed-app';

/** Buttons for the app as a whole, while there is something to offer: a new version, the installation. */
export function AppButtons() {
  const { waiting, install } = useAppOffers();
  const [notice, setNotice] = useState('');
  return (
    <>
      {waiting && (
        <button
          type="button"
          className="small"
          title="A new version is ready. The page is loaded again."
          onClick={() => void switchVersion(waiting).then((reason) => setNotice(reason ?? ''))}
        >
          Update
        </button>
      )}
      {install && (
        <button type="button" className="small" onClick={() => void install.prompt()}>
          Install
        </button>
      )}
      <span role="status" className="offer-notice">
        {notice}
      </span>
    </>
  );
}
