'use client';

import { useState } from 'react';
import { t } from '../texts';
import { Button } from './button';
import { switchVersion, useAppOffers } from './installed-app';

/** Buttons for the app as a whole, while there is something to offer: a new version, the installation. */
export function AppButtons() {
  const { waiting, install } = useAppOffers();
  const [notice, setNotice] = useState('');
  return (
    <div className="app-offers">
      {waiting && (
        <Button
          className="small update"
          title={t('common.updateHint')}
          onClick={() => void switchVersion(waiting).then((reason) => setNotice(reason ?? ''))}
        >
          {t('common.update')}
        </Button>
      )}
      {install && (
        <Button className="small" onClick={() => void install.prompt()}>
          {t('common.install')}
        </Button>
      )}
      <span role="status" className="offer-notice muted text-m">
        {notice}
      </span>
    </div>
  );
}
