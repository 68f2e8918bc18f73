/** A secret that the gateway keeps: pasted, stored, replaced with an overlap, deleted; its text is never shown. */
import { Button, Fieldset, Group, PasswordInput, Select, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../../api/again.ts';
import { send } from '../../../../api/client.ts';
import { ErrorState } from '../../../../parts/states.tsx';
import { Time } from '../../../../parts/time.tsx';
import { useWork } from '../../../../parts/use-work.ts';
import { ActButton } from '../../parts/act.tsx';
import { answerKey, useAnswer } from '../../parts/load.tsx';
import type { VendorSecret } from '../../types.ts';
import { useMember } from './context.ts';
import type { Path } from './edit-yaml.ts';
import { SecretField } from './fields.tsx';

const secretsPath = '/admin/secrets';
const overlaps = ['worked', 'none', 'hour', 'day', 'week'] as const;
type Overlap = (typeof overlaps)[number];

interface StoredSecretProps {
  /** `secret:NAME` in the settings. */
  readonly name: string;
  readonly title?: string;
  /** Called when one is stored. */
  readonly onStored?: () => void;
  /** Work with what is pasted, or where that is empty with what is stored. */
  readonly beside?: (given: string, isStored: boolean) => ReactNode;
  readonly children?: ReactNode;
}

export function StoredSecret({ name, title, onStored, beside, children }: StoredSecretProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { data } = useAnswer<{ readonly rows: readonly VendorSecret[] }>(secretsPath);
  const [pasted, setPasted] = useState('');
  const [overlap, setOverlap] = useState<Overlap>('worked');
  const { busy, problem, run } = useWork((error) => error);
  const stored = data?.rows.find((row) => row.name === name);
  const isStored = stored !== undefined && stored.state !== 'missing';
  const given = pasted.trim();
  const store = () =>
    run(async () => {
      await send('POST', secretsPath, { name, value: given, ...(isStored ? { overlap } : {}) });
      setPasted('');
      onStored?.();
      notifications.show({ message: t('operator.config.forms.stored.done'), color: 'teal' });
      await askAgain(client, answerKey(secretsPath));
    });
  return (
    <Fieldset legend={title ?? t('operator.config.forms.stored.title')} mt="sm">
      <Stack gap="sm">
        <Text fz="sm" c="dimmed" component="div">
          <State stored={stored} name={name} /> {t('operator.config.forms.stored.hint')}
        </Text>
        <Group align="flex-end" gap="xs">
          <PasswordInput
            label={t('operator.config.forms.stored.paste')}
            value={pasted}
            className="grow"
            autoComplete="off"
            onChange={({ currentTarget }) => setPasted(currentTarget.value)}
          />
          {isStored && given !== '' && <OverlapChoice value={overlap} onChange={setOverlap} />}
          {beside?.(given, isStored)}
          <Button loading={busy} disabled={given === ''} onClick={() => void store()}>
            {t(isStored ? 'operator.config.forms.stored.replace' : 'operator.config.forms.stored.store')}
          </Button>
          {isStored && <Delete name={name} usedBy={stored.usedBy} />}
        </Group>
        {problem !== undefined && <ErrorState error={problem} />}
        {children}
      </Stack>
    </Fieldset>
  );
}

function OverlapChoice({ value, onChange }: { readonly value: Overlap; readonly onChange: (value: Overlap) => void }) {
  const { t } = useTranslation();
  return (
    <Select
      label={t('operator.config.forms.stored.overlap')}
      data={overlaps.map((one) => ({ value: one, label: t(`operator.config.forms.stored.overlaps.${one}`) }))}
      value={value}
      allowDeselect={false}
      onChange={(chosen) => onChange((chosen ?? 'worked') as Overlap)}
    />
  );
}

function Delete({ name, usedBy }: Pick<VendorSecret, 'name' | 'usedBy'>) {
  const { t } = useTranslation();
  return (
    <ActButton
      look={{ size: 'sm', color: 'red' }}
      danger
      title={t('operator.config.forms.stored.deleteTitle', { name })}
      text={
        usedBy.length === 0
          ? t('operator.config.forms.stored.deleteText')
          : t('operator.config.forms.stored.inUse', { by: usedBy.join(', ') })
      }
      action={t('operator.config.forms.stored.delete')}
      stale={[answerKey(secretsPath)]}
      act={async (reason) => {
        await send('POST', `${secretsPath}/${encodeURIComponent(name)}/delete`, { reason });
        return t('operator.config.forms.stored.deleted', { name });
      }}
    />
  );
}

function State({ stored, name }: { readonly stored: VendorSecret | undefined; readonly name: string }) {
  const { t } = useTranslation();
  if (stored === undefined || stored.state === 'missing')
    return <>{t('operator.config.forms.stored.none', { name })}</>;
  if (stored.state === 'unreadable') return <>{t('operator.config.forms.stored.unreadable')}</>;
  const { lastFour, fingerprint, setAt, setBy, older } = stored;
  return (
    <>
      {t(`operator.config.forms.stored.${lastFour === '' ? 'storedShort' : 'stored'}`, {
        end: `…${lastFour}`,
        fingerprint,
        by: setBy ?? '–',
      })}{' '}
      <Time at={setAt} />.{' '}
      {older.map((one) => (
        <span key={one.fingerprint}>
          {t(`operator.config.forms.stored.${one.untilWorked ? 'olderUntilWorked' : 'olderUntil'}`, {
            end: `…${one.lastFour}`,
          })}{' '}
          <Time at={one.until} />.{' '}
        </span>
      ))}
    </>
  );
}

interface SecretSettingProps {
  readonly path: Path;
  readonly label: string;
  /** What it is stored under. */
  readonly name: string;
}

/** A secret of a setting: a variable's name, or pasted here and named by the setting. */
export function SecretSetting({ path, label, name }: SecretSettingProps) {
  const { written, isFixed, set } = useMember(path);
  const reference = `\${secret:${name}}`;
  const isStored = written === reference;
  return (
    <Stack gap={0}>
      {!isStored && <SecretField path={path} label={label} />}
      {!isFixed && <StoredSecret name={name} title={label} onStored={() => set(reference)} />}
    </Stack>
  );
}
