/** A field for a moment to come, in the viewer's zone, and what it means to the API. */
import { TextInput } from '@mantine/core';
import { localMinute } from '../../../parts/format.ts';

interface MomentFieldProps {
  readonly label: string;
  readonly description: string;
  /** `2026-12-01T08:30`; empty: none. */
  readonly value: string;
  readonly onChange: (local: string) => void;
}

export function MomentField({ onChange, ...field }: MomentFieldProps) {
  return (
    <TextInput
      {...field}
      type="datetime-local"
      min={localMinute(new Date())}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

/** ISO 8601; null: empty. */
export const toIso = (local: string): string | null => (local === '' ? null : new Date(local).toISOString());
