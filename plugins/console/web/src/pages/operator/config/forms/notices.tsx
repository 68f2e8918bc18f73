/** Notices to accounts that have chosen nothing: thresholds, channels and language. */
import { Fieldset, Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { noticeLanguage } from '../../../../parts/sent-notices.tsx';
import { Loaded, useAnswer } from '../../parts/load.tsx';
import type { UsualNotices } from '../../types.ts';
import { useMember } from './context.ts';
import { ChoiceField, TextField } from './fields.tsx';

const at = ['notices'];
const languages = { en: 'English', de: 'Deutsch', ja: '日本語', zh: '中文' };
type Kind = UsualNotices['kinds'][number];

export function NoticeForm() {
  const { t, i18n } = useTranslation();
  const usual = useAnswer<UsualNotices>('/admin/notices', { language: noticeLanguage(i18n.language) });
  return (
    <Stack gap="sm">
      <Text fz="sm" c="dimmed">
        {t('operator.config.forms.notices.hint')}
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="sm">
        <ChoiceField
          path={[...at, 'language']}
          label={t('operator.config.forms.notices.language')}
          usual={languages.en}
          choices={Object.entries(languages).map(([value, label]) => ({ value, label }))}
        />
      </SimpleGrid>
      <Loaded of={usual} height={240}>
        {({ kinds }) => (
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
            {kinds.map((kind) => (
              <KindFields key={kind.kind} kind={kind} />
            ))}
          </SimpleGrid>
        )}
      </Loaded>
    </Stack>
  );
}

function KindFields({ kind: { kind, title, unit, channels, usual } }: { readonly kind: Kind }) {
  const { t } = useTranslation();
  return (
    <Fieldset legend={title}>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Channels kind={kind} usual={channels} />
        {unit !== 'none' && (
          <TextField
            path={[...at, 'kinds', kind, 'threshold']}
            label={t(`operator.config.forms.notices.unit.${unit}`)}
            usual={usual ?? ''}
          />
        )}
      </SimpleGrid>
    </Fieldset>
  );
}

const sets: Readonly<Record<string, Kind['channels']>> = {
  none: [],
  mail: ['mail'],
  webhook: ['webhook'],
  both: ['mail', 'webhook'],
};
const nameOf = (channels: readonly unknown[]) =>
  Object.entries(sets).find(
    ([, set]) => set.length === channels.length && set.every((one) => channels.includes(one)),
  )?.[0] ?? null;

function Channels({ kind, usual }: { readonly kind: string; readonly usual: Kind['channels'] }) {
  const { t } = useTranslation();
  const { written, error, isFixed, set } = useMember([...at, 'kinds', kind, 'channels']);
  const words = (name: string) =>
    name === 'mail' || name === 'webhook'
      ? t(`client.profile.notices.${name}`)
      : t(`operator.config.forms.notices.${name as 'none' | 'both'}`);
  return (
    <Select
      label={t('operator.config.forms.notices.channels')}
      placeholder={words(nameOf(usual) ?? 'none')}
      data={Object.keys(sets).map((value) => ({ value, label: words(value) }))}
      value={Array.isArray(written) ? nameOf(written) : null}
      clearable
      disabled={isFixed}
      error={error}
      onChange={(chosen) => set(chosen === null ? undefined : sets[chosen])}
    />
  );
}
