import { NeedsServer } from '../shared/needs-server';
import { ServePage } from './serve-page';

export default function Page() {
  return (
    <NeedsServer here="/serve" name="common.serve">
      <ServePage />
    </NeedsServer>
  );
}
