import { NeedsServer } from '../shared/needs-server';
import { ServePage } from './serve-page';

export default function Page() {
  return (
    <NeedsServer here="/serve" title="common.serve">
      <ServePage />
    </NeedsServer>
  );
}
