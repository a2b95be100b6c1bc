/** Who owns the installation: the first start makes this owner, and the control token acts for it. */
export const firstOwner = 'owner';
/** `keyId` of callers with the control token: no key has such an id. */
export const controlKeyId = 'control';
