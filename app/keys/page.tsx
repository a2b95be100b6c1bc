import { NeedsServer } from '../shared/needs-server';
import { KeysPage } from './keys-page';

export default function Page() {
  return (
    <NeedsServer here="/keys" name="common.keys">
      <KeysPage />
    </NeedsServer>
  );
}
