/** Fields that several kinds have. */
import { Select, Textarea } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { countText } from '../../../../parts/format.ts';

interface LongTextProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  /** In characters. */
  readonly most?: number | undefined;
  readonly placeholder?: string;
}

/** A text with the model's bound on its length. */
export function LongText({ label, value, onChange, most, placeholder }: LongTextProps) {
  const { t, i18n } = useTranslation();
  return (
    <Textarea
      label={label}
      placeholder={placeholder ?? t('client.playground.runHint')}
      description={
        most === undefined ? undefined : t('client.playground.characters', { most: countText(most, i18n.language) })
      }
      autosize
      minRows={3}
      maxRows={12}
      maxLength={most}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly data: readonly (string | { readonly value: string; readonly label: string })[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** One of what the model has. */
export function Choice({ label, data, value, onChange }: ChoiceProps) {
  return (
    <Select
      label={label}
      data={[...data]}
      value={value}
      allowDeselect={false}
      disabled={data.length === 1}
      onChange={(chosen) => chosen !== null && onChange(chosen)}
    />
  );
}
