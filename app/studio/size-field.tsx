import { type Size, sizes } from '../../lib/contract/request';

const names: Readonly<Record<Size, string>> = {
  '1280*720': 'Landscape',
  '720*1280': 'Portrait',
};

/** Two shapes to pick from. */
export function SizeField(props: { value: Size; onChange: (size: Size) => void }) {
  return (
    <fieldset className="field">
      <legend>Size</legend>
      <div className="choices">
        {sizes.map((size) => (
          <label key={size} className="choice">
            <input
              type="radio"
              name="size"
              value={size}
              checked={props.value === size}
              onChange={() => props.onChange(size)}
            />
            <span className="shape" data-size={size} aria-hidden="true" />
            <span>
              {names[size]} <small>{size.replace('*', '×')}</small>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
