import { type ComponentId, toKinoraError } from '../../contract';
import { deleteComponent, verifyComponent } from '../store';
import type { ManagedModel } from './managed-model';

/** Compares a stored part with its checksums; a damaged one is deleted, and says why. */
export async function verifyPart(model: ManagedModel, component: ComponentId): Promise<void> {
  const before = model.part(component);
  model.dispatch(component, { type: 'verifying' });
  try {
    const stored = await verifyComponent(model.folder.folder(component), {
      onProgress: (bytesDone, bytesTotal) =>
        model.dispatch(component, {
          type: 'progress',
          bytesDone,
          bytesTotal,
          bytesStored: before.bytesStored,
        }),
    });
    const { bytesStored } = stored;
    model.dispatch(component, { type: 'completed', bytes: before.bytesDone, bytesStored });
  } catch (thrown) {
    const error = toKinoraError(thrown);
    if (!error.code.startsWith('MODEL_FILE_')) throw error;
    await deleteComponent(model.folder.folder(component));
    model.dispatch(component, { type: 'removed', error: error.toRecord() });
  }
}

/** Deletes what is stored of a part. */
export async function deletePart(model: ManagedModel, component: ComponentId): Promise<void> {
  await deleteComponent(model.folder.folder(component));
  model.dispatch(component, { type: 'removed' });
  await model.refresh();
}
