import { PageTitle } from '../shared/page-title';
import { SettingsPage } from './settings-page';

export default function Page() {
  return (
    <>
      <PageTitle name="common.settings" />
      <SettingsPage />
    </>
  );
}
