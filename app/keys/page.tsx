import { NeedsServer } from '../shared/needs-server';
import { KeysPage } from './keys-page';

export default function Page() {
  return (
    <NeedsServer here="/keys" title="common.keys">
      <KeysPage />
    </NeedsServer>
  );
}
