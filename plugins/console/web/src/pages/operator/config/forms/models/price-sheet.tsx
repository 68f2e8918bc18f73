/** A price or own cost: an amount for each class, by size where it has sizes, and the tiers beside them. */

import { Fieldset, SimpleGrid, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { ModelKind } from '../../../../../../../../common/domain/models.ts';
import { useClassName } from '../../../../../parts/known-words.ts';
import { useForms, useMember } from '../context.ts';
import type { Path } from '../edit-yaml.ts';
import { TextField } from '../fields.tsx';
import { namesAt, valueAt } from '../layers.ts';
import { AddSize } from './add-size.tsx';
import { hasSizes, isOfTokens, unitOf, usualClasses } from './model-kinds.ts';
import { Remove, Tiers } from './tiers.tsx';

/** Members of a price that are not a class. */
const tierNames = new Set(['above', 'service', 'hours']);
const versionNames = new Set(['version', 'valid_from', 'valid_until']);

interface PriceSheetProps {
  readonly at: Path;
  readonly kind: ModelKind;
  readonly legend: string;
}

export function PriceSheet({ at, kind, legend }: PriceSheetProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const { error } = useMember(at);
  const written = valueAt(layers, at);
  const names = namesAt(layers, at);
  const isOther = written !== undefined && names.length === 0;
  const version = names.filter((one) => versionNames.has(one));
  const classes = names.filter((one) => !tierNames.has(one) && !versionNames.has(one));
  const shown = [...new Set([...usualClasses[kind], ...classes])];
  return (
    <Fieldset legend={legend}>
      <Stack gap="sm">
        {isOther ? (
          <Text fz="sm" c="dimmed">
            {written === 'free' ? t('operator.config.forms.isFree') : t('operator.config.forms.inText')}
          </Text>
        ) : (
          <>
            <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
              {shown.map((one) => (
                <ClassField key={one} at={[...at, one]} name={one} />
              ))}
            </SimpleGrid>
            {shown.filter(hasSizes).map((one) => (
              <AddSize key={one} at={[...at, one]} name={one} />
            ))}
            {names.length > 0 && <Tiers at={at} classes={shown.filter(isOfTokens)} />}
          </>
        )}
        {version.length > 0 && (
          <Text fz="xs" c="dimmed">
            {t('operator.config.forms.tiersInText', { names: version.join(', ') })}
          </Text>
        )}
        {error !== undefined && (
          <Text fz="sm" c="red" role="alert">
            {error}
          </Text>
        )}
      </Stack>
    </Fieldset>
  );
}

/** One amount, or one for each size. */
function ClassField({ at, name }: { readonly at: Path; readonly name: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const nameOf = useClassName();
  const hint = t(`shell.per.${unitOf(name)}`);
  const sizes = namesAt(layers, at);
  if (sizes.length === 0) return <TextField path={at} label={nameOf(name)} hint={hint} />;
  return sizes.map((size) => (
    <TextField
      key={size}
      path={[...at, size]}
      label={`${nameOf(name)} · ${size}`}
      hint={hint}
      beside={<Remove path={[...at, size]} label={t('operator.config.forms.removeTier', { name: size })} />}
    />
  ));
}
