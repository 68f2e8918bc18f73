/** Gives a key another secret, which is shown once; how long the one before works too is chosen. */
import { Select, Stack, Text } from '@mantine/core';
import i18next from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../api/client.ts';
import type { KeyRow, RotatedKey } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { SecretOnce } from '../../parts/secret-once.tsx';
import rotation from '../../texts/en/rotation.ts';

i18next.addResourceBundle('en', 'translation', { client: rotation }, true);

export const overlapHours = { none: 0, hour: 1, day: 24, week: 168, month: 720 } as const;
export type Overlap = keyof typeof overlapHours;
const overlaps = Object.keys(overlapHours) as Overlap[];

interface RotateKeyProps {
  readonly row: KeyRow | undefined;
  readonly onClose: () => void;
  readonly onChanged: () => Promise<unknown>;
}

export function RotateKey({ row, onClose, onChanged }: RotateKeyProps) {
  const { t } = useTranslation();
  const [overlap, setOverlap] = useState<Overlap>('day');
  const [made, setMade] = useState<RotatedKey>();
  const rotate = async () => {
    setMade(await send<RotatedKey>('POST', `/keys/${row!.id}/rotate`, { overlapHours: overlapHours[overlap] }));
    await onChanged();
  };
  return (
    <>
      <Confirm
        opened={row !== undefined}
        title={t('client.rotation.title', { name: row?.name ?? '' })}
        action={t('client.rotation.rotate')}
        onConfirm={rotate}
        onClose={onClose}
      >
        <RotationFields overlap={overlap} onChange={setOverlap} />
      </Confirm>
      <SecretOnce title={t('client.rotation.made')} secret={made?.key} onSaved={() => setMade(undefined)} />
    </>
  );
}

interface RotationFieldsProps {
  readonly overlap: Overlap;
  readonly onChange: (overlap: Overlap) => void;
}

export function RotationFields({ overlap, onChange }: RotationFieldsProps) {
  const { t } = useTranslation();
  return (
    <Stack gap="sm">
      <Text fz="sm">{t('client.rotation.words')}</Text>
      <Select
        label={t('client.rotation.overlap')}
        description={t('client.rotation.hint')}
        data={overlaps.map((value) => ({ value, label: t(`client.rotation.by.${value}`) }))}
        value={overlap}
        allowDeselect={false}
        onChange={(value) => onChange(overlaps.find((one) => one === value) ?? 'day')}
      />
    </Stack>
  );
}
