/** The instructions before a conversation, and those that are kept in this browser. */
import { Button, Group, Select, Textarea } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

const keptUnder = 'console-playground-presets';
const most = 50;

function kept(): readonly string[] {
  try {
    const parsed: unknown = JSON.parse(localStorage.getItem(keptUnder) ?? '[]');
    return Array.isArray(parsed) ? parsed.filter((one) => typeof one === 'string').slice(0, most) : [];
  } catch {
    return [];
  }
}

const nameOf = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

function usePresets() {
  const [presets, setPresets] = useState(kept);
  const put = (next: readonly string[]) => {
    setPresets(next);
    localStorage.setItem(keptUnder, JSON.stringify(next));
  };
  return {
    presets,
    keep: (text: string) => put([text, ...presets.filter((one) => one !== text)].slice(0, most)),
    drop: (text: string) => put(presets.filter((one) => one !== text)),
  };
}

interface InstructionsProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

export function Instructions({ value, onChange }: InstructionsProps) {
  const { t } = useTranslation();
  const { presets, keep, drop } = usePresets();
  const text = value.trim();
  const isKept = presets.includes(text);
  return (
    <>
      <Textarea
        label={t('client.playground.system')}
        autosize
        minRows={2}
        maxRows={8}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {(presets.length > 0 || text !== '') && (
        <Group gap="xs" wrap="nowrap">
          <Select
            aria-label={t('client.playground.presets')}
            placeholder={t('client.playground.presets')}
            size="xs"
            className="grow"
            data={presets.map((one) => ({ value: one, label: nameOf(one) }))}
            value={isKept ? text : null}
            disabled={presets.length === 0}
            onChange={(chosen) => chosen !== null && onChange(chosen)}
          />
          {text !== '' && (
            <Button size="xs" variant="default" onClick={() => (isKept ? drop(text) : keep(text))}>
              {isKept ? t('client.playground.dropPreset') : t('client.playground.keepPreset')}
            </Button>
          )}
        </Group>
      )}
    </>
  );
}
